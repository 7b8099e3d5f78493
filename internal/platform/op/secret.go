package op

// SecretsAgain returns the violations of a change that would send stored secrets to another place. moved reports
// whether the place changes: a host, an address, a port or its encryption. kept lists the fields of secrets that are
// stored and not given again. Whoever may change the place may not know the secret, so it is never sent there.
func SecretsAgain(moved bool, kept ...string) []Violation {
	if !moved {
		return nil
	}
	all := make([]Violation, len(kept))
	for i, field := range kept {
		all[i] = Field(field, "secret_required", "give it again: the stored one is not sent to another address")
	}
	return all
}
