"""What runs in Spark's driver: the session, planning, writing, answers to the Java side."""
