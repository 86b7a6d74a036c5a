"""countwise risk and the commands below it: what estimators and mechanisms lose."""
