-- Facts about the whole installation, such as the fingerprint of the master key and the last known time.
CREATE TABLE installation (
	name  TEXT PRIMARY KEY,
	value TEXT NOT NULL
);
