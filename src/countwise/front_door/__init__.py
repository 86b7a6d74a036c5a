"""One public function for every command, with the same words; where a loss is paid for.

A function takes what its command takes, as text or as values of Python, does the whole job, and
returns what the command prints. `countwise risk certify` is `countwise.risk_certify`.
"""
