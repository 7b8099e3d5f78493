package command

// The environment variables of these commands.
const (
	URLVariable  = "SONIQ_URL"
	KeyVariable  = "SONIQ_KEY"
	DataVariable = "SONIQ_DATA"
)
