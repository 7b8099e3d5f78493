-- Where a phone is, for emergency services.
ALTER TABLE devices ADD COLUMN location TEXT;
