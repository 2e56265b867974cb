"""Real object-store servers on loopback, a conditional GCS server and a fault-injecting proxy."""
