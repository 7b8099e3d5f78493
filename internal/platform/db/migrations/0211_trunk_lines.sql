-- The node that registers a trunk at its carrier, and the state of that registration. Only a node that serves holds a line.
CREATE TABLE trunk_lines (
	trunk_id   TEXT PRIMARY KEY,
	node       TEXT NOT NULL,
	status     TEXT NOT NULL DEFAULT '',
	expires_at BIGINT,
	error      TEXT
);
