"""Check a bill of materials against CycloneDX's schema; needs the packages of requirements-release.lock.

python scripts/check_bom.py septet.cdx.json
"""

import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(Path(sys.argv[1]).read_text(encoding="utf-8"))
sys.exit(f"not valid CycloneDX 1.6: {error}" if error else 0)
