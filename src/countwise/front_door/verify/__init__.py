"""The functions of countwise verify, the commands below it, and receipts."""
