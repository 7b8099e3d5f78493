-- Switches of the whole installation, such as the one that stops outbound calls.
CREATE TABLE switches (
	name       TEXT PRIMARY KEY,
	thrown     BOOLEAN NOT NULL,
	changed_at BIGINT NOT NULL
);
