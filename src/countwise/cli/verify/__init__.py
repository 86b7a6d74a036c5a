"""countwise verify, the commands below it, and receipts: findings in confidential data."""
