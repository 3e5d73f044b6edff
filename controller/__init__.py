"""The controller. Its matrices are small: threads of the linear algebra library cost more than they bring, so
unless somebody said otherwise there is one. That has to be said before numpy is loaded."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
