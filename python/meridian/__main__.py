# SPDX-License-Identifier: Apache-2.0
import sys

from ._program import main

sys.exit(main())
