"""Code that runs in the Spark driver: session, planning, writing, answers to the Java classes."""
