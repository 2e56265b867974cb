"""What a split is made of: container, footer, members, fields, partition values."""
