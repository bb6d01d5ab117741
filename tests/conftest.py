"""One thread per process: small networks only lose by sharing their work, and the tests by fighting for cores."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
