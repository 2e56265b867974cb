"""The container of a split. Decides its footer, its members and how each column is indexed."""
