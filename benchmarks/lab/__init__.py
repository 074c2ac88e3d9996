"""The bench itself: a private server, pools, interleaved rounds."""
