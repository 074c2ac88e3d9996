"""`rqueue doctor`: walks over every key of a queue and says what contradicts what."""
