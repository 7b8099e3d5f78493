-- Headings of an imported table that were not understood, as JSON.
ALTER TABLE contact_imports ADD COLUMN unknown_columns TEXT NOT NULL DEFAULT '[]';
