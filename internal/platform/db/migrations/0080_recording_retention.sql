-- Recordings that may be removed are found by when.
CREATE INDEX recordings_retention ON recordings (retention_until) WHERE retention_until IS NOT NULL AND legal_hold = FALSE;
