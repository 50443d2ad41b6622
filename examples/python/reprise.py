# SPDX-License-Identifier: Apache-2.0
"""Names the new module to programs that find this folder in PYTHONPATH.

No wheel and no sdist has this file, because the module `reprise` of an installed package is that of another project.
"""

raise ImportError("this module is now reprise_decoding: write `import reprise_decoding` instead of `import reprise`")
