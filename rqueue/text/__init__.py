"""What is shown: text from outside without control characters, numbers with their nouns.

Imports nothing of rqueue.
"""
