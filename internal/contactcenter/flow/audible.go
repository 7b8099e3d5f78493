package flow

// NeedsCaller reports whether a step plays audio to the caller or connects the caller. Such a step waits until a conversation has ended.
func NeedsCaller(c Action) bool {
	switch c.(type) {
	case *Play, *Menu, *Collect, *HuntGroup, *Queue, *AIAgent, *Transfer, *Voicemail, *Callback:
		return true
	}
	return false
}

// ReturnsAfter reports whether a step that needs the caller can follow an outcome of a step.
func (p *Program) ReturnsAfter(s *Step, outcome string) bool {
	first := p.Next(s, outcome)
	if first == nil {
		return false
	}
	seen, todo := map[string]bool{}, []*Step{first}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if at == nil || seen[at.ID] {
			continue
		}
		if NeedsCaller(at.Config) {
			return true
		}
		seen[at.ID] = true
		for _, id := range nextIDs(at.Next) {
			todo = append(todo, p.Steps[id])
		}
	}
	return false
}
