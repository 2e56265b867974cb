"""The transaction log. Decides what a table is at each version, and how a version is added.

``log.TransactionLog`` is the entry point; ``commit.transaction.Transaction`` says what to change;
``read.snapshot.Snapshot`` is a table at one version.
"""
