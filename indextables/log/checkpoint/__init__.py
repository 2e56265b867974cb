"""Checkpoints. Decides when and how a whole version is written: JSON, or Avro with manifests."""
