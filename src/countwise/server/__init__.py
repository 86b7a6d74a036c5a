"""The verification server: HTTP, sign-in, jobs and storage. It computes nothing itself.

Owns accounts, the queue, the processes and their limits. Claims, noise and posteriors are
`verification`'s, budgets are the ledger's. The process that answers HTTP never reads confidential
rows; a process without network or database does, once for each answer that was paid for.
"""
