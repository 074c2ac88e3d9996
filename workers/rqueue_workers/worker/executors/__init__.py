"""Where jobs run: the main thread, threads, an event loop; slots that run what is submitted."""
