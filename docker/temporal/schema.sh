#!/bin/sh
# Make Temporal's two databases, or bring their schemas up to date; each command leaves alone what is there already.
# Where the database is: SQL_HOST, SQL_PORT, SQL_USER, SQL_PLUGIN, and a file with the password.
set -eu
SQL_PASSWORD=$(cat /run/secrets/postgres_password)
export SQL_PASSWORD
schemas=/etc/temporal/schema/postgresql/v12

for database in temporal:temporal temporal_visibility:visibility; do
    name=${database%:*} schema=${database#*:}
    temporal-sql-tool --db "$name" create
    temporal-sql-tool --db "$name" setup-schema --version 0.0
    temporal-sql-tool --db "$name" update-schema --schema-dir "$schemas/$schema/versioned"
done
