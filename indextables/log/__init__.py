"""The transaction log: what a table is, version by version.

``log.TransactionLog`` is the door; ``transaction.Transaction`` says what to change;
``snapshot.Snapshot`` is a table at one version.
"""
