"""A version written whole: JSON parts, or an Avro state of manifests."""
