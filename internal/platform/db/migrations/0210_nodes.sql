-- Nodes that serve this database (PostgreSQL only). A node renews lease_until by the database's clock. States: serving; evicted, whose lease
-- was over and whose work is being closed; gone, whose work is closed; left, stopped in order. The epoch grows with each start and eviction.
CREATE TABLE nodes (
	id          TEXT PRIMARY KEY,
	epoch       BIGINT NOT NULL,
	state       TEXT NOT NULL,
	version     TEXT NOT NULL,
	joined_at   BIGINT NOT NULL,
	lease_until BIGINT NOT NULL
);

-- Files and folders that a node has to delete from its own disk.
CREATE TABLE node_file_removals (
	node         TEXT NOT NULL,
	name         TEXT NOT NULL,
	requested_at BIGINT NOT NULL,
	PRIMARY KEY (node, name)
);

-- The node that holds the connection of a registration, and to which a router forwards. Empty: registered before this column existed.
ALTER TABLE registrations ADD COLUMN node TEXT NOT NULL DEFAULT '';
CREATE INDEX registrations_node ON registrations (node) WHERE flow <> 0;
