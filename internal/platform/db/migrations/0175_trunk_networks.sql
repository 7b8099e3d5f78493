-- Networks from which calls of an organisation's trunks come for certain: the operator confirmed them, or a call came from there and its
-- caller acknowledged our answer. Such sources are never banned. A network that the operator confirmed may overlap one of another organisation.
CREATE TABLE trunk_networks (
	org_id     TEXT NOT NULL REFERENCES orgs (id),
	network    TEXT NOT NULL,
	proof      TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, network)
);
-- Which calls a trunk takes part in: inbound, outbound or both; and whether it may show numbers of other trunks.
ALTER TABLE trunks ADD COLUMN direction TEXT NOT NULL DEFAULT 'both';
ALTER TABLE trunks ADD COLUMN foreign_numbers BOOLEAN NOT NULL DEFAULT FALSE;
-- Several organisations may enter the same number, each on a trunk of its own. proven_at says since when a number is known to belong to its
-- organisation. Numbers from before count as proven.
ALTER TABLE numbers ADD COLUMN proven_at BIGINT;
UPDATE numbers SET proven_at = COALESCE(allocated_at, created_at) WHERE status IN ('active', 'suspended', 'releasing');
DROP INDEX numbers_owner;
CREATE INDEX numbers_dialled ON numbers (number) WHERE status NOT IN ('released', 'failed', 'port_failed') AND provider <> 'sandbox';
