"""What a window costs with a real assistant: its own compaction, and the gateway, on the same work.

    python -m benchmarks.clients --clients FOLDER

The assistants are no dependency of the project (tests/gateway/test_real_clients.py says how to install them), and want no network. How it
works:

1. `coder.py` is a scripted model. It works through the files of a made-up project: it reads one, runs long tests, edits it, sees a test
   fail, and looks at a file again. It delegates, and looks at an image. Before an edit it looks for the line that it must quote. If its
   request lacks the line, it recalls or reads the file again, and gives up if that does not help.
2. `runs.py` starts the assistant with an empty home, against a strict stub of its provider (`tests/support/stubs`) that bills cached
   prefixes.
3. `figures.py` reads the requests that the stub got, and says what they cost and what the model could see in them.
"""
