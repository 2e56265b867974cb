"""Companions: indexes over Delta, Iceberg and Parquet tables that stay where and as they are.

A companion is a table of ours whose splits hold no rows. Each split indexes the rows of some files
of the *source*, in order, deleted ones included; ``files`` says which. ``rows`` reads rows out of
those files, ``origin`` ties the two together, ``reading`` makes of a log and a snapshot of the
source the snapshot that queries see, and ``building`` indexes files that no split covers yet.
"""
