#!/bin/sh
# Start Temporal's server as its image does, with the database's password from a file.
set -eu
POSTGRES_PWD=$(cat /run/secrets/postgres_password)
export POSTGRES_PWD
exec /etc/temporal/entrypoint.sh "$@"
