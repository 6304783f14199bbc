#!/usr/bin/env python3
"""Prints python/tests/mxnet-answers.txt: what MXNet 1.9.1 answers to the calls in python/tests/mxnet_cases.py.  Run it with the
Python that has MXNet (dev/gluon-check says how to get one):

    mx/bin/python dev/gluon-record.py > python/tests/mxnet-answers.txt
"""
import contextlib
import os
import sys
import warnings

warnings.simplefilter("ignore")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../python/tests"))
import mxnet as mx  # noqa: E402
import mxnet_cases  # noqa: E402
import numpy  # noqa: E402

print(f"# Results of MXNet {mx.__version__} with NumPy {numpy.__version__}, by dev/gluon-record.py: call, tab, JSON (an array: type, shape, elements).")
with contextlib.redirect_stdout(sys.stderr):  # MXNet prints warnings
    answers = list(mxnet_cases.answers(mx))
for call, answer in answers:
    print(f"{call}\t{answer}")
