-- Tables, columns and indexes of the timelines of ended calls have the name that the API and the console use. SQLite cannot rename an index.
ALTER TABLE call_stories RENAME TO call_timelines;
ALTER TABLE call_timelines RENAME COLUMN story TO timeline;
DROP INDEX call_stories_written;
CREATE INDEX call_timelines_written ON call_timelines (written_at);
ALTER TABLE call_story_ends RENAME TO call_timeline_ends;
ALTER TABLE call_timeline_ends RENAME COLUMN story TO timeline;
DROP INDEX call_story_ends_written;
CREATE INDEX call_timeline_ends_written ON call_timeline_ends (written_at);
