-- What a node holds is looked for once, when it starts, among the few calls in progress; each call wrote these indexes four times.
DROP INDEX calls_node;
DROP INDEX call_dialogs_node;
