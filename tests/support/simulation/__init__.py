"""The simulated device (../../simulated/scheduler.h): its library, and what tests ask of it."""
