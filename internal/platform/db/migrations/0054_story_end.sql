-- What was said after a call's end was written down: its BYEs and their answers. Packed as call_stories.story is.
CREATE TABLE call_story_ends (
	org_id     TEXT NOT NULL,
	call_id    TEXT NOT NULL,
	story      BLOB NOT NULL,
	written_at BIGINT NOT NULL,
	PRIMARY KEY (org_id, call_id),
	FOREIGN KEY (org_id, call_id) REFERENCES calls (org_id, id)
);
CREATE INDEX call_story_ends_written ON call_story_ends (written_at);
