"""Write the bill of materials of an image (CycloneDX 1.6) from the output of docker/list_packages.py.

python scripts/write_image_bom.py NAME DIGEST < packages.json > septet-image.cdx.json
"""

import json
import re
import sys
import uuid
from typing import Any
from urllib.parse import quote

SCHEMA = "http://cyclonedx.org/schema/bom-1.6.schema.json"
NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")
"""The namespace of URLs; it gives the same image the same serial number."""
DIGEST_LENGTH = 64


def main(name: str, digest: str) -> None:
    """Read the list and print the bill.

    Raises:
        SystemExit: The digest is not valid, or the list names no package of Debian or Python.
    """
    hexadecimal = digest.removeprefix("sha256:")
    if len(hexadecimal) != DIGEST_LENGTH or set(hexadecimal) - set("0123456789abcdef"):
        sys.exit(f"{digest} is not the digest of an image: docker image inspect --format '{{{{.Id}}}}' {name}")
    listed = json.load(sys.stdin)
    if not listed["debian"] or not listed["python"]:
        sys.exit(f"{name}: no packages were listed. Run docker/list_packages.py inside the image.")
    print(json.dumps(bill(name, hexadecimal, listed), indent=2))


def bill(name: str, digest: str, listed: dict[str, Any]) -> dict[str, Any]:
    """Return the bill: one component for each package, with its package URL."""
    distribution = listed["distribution"]
    components = [
        *(component(each, debian_purl(each, distribution)) for each in listed["debian"]),
        *(
            component(each, f"pkg:pypi/{re.sub('[-_.]+', '-', each['package']).lower()}@{version(each)}")
            for each in listed["python"]
        ),
        *(component(each, f"pkg:npm/{quote(each['package'])}@{version(each)}") for each in listed["npm"]),
    ]
    return {
        "$schema": SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, f'oci:{name}@{digest}')}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "container",
                "bom-ref": f"pkg:oci/{quote(name)}@sha256:{digest}",
                "name": name,
                "hashes": [{"alg": "SHA-256", "content": digest}],
                "properties": [{"name": "septet:distribution", "value": distribution}],
            }
        },
        "components": components,
    }


def component(package: dict[str, str], purl: str) -> dict[str, Any]:
    """Return the component of a package."""
    licence = package.get("licence", "")
    licences = {"licenses": [{"license": {"name": licence}}]} if licence else {}
    facts = {"type": "library", "bom-ref": purl, "name": package["package"], "version": package["version"]}
    return {**facts, **licences, "purl": purl}


def debian_purl(package: dict[str, str], distribution: str) -> str:
    """Return the package URL of a Debian package."""
    named = f"pkg:deb/{distribution.partition('-')[0]}/{package['package']}@{version(package)}"
    return f"{named}?arch={package['architecture']}&distro={distribution}"


def version(package: dict[str, str]) -> str:
    """Return a version in the form of a package URL."""
    return quote(package["version"], safe=".-_~")


if __name__ == "__main__":
    main(*sys.argv[1:3])
