package browser

import "strings"

// clickText clicks the first element with a role whose text contains all of the given texts. It waits for it.
func (p *consolePage) clickText(role string, texts ...string) {
	p.t.Helper()
	var name string
	until(p.t, role+" with "+strings.Join(texts, ", "), pageTime, func() bool {
		for _, n := range p.nodes(role, "") {
			if name = p.nameOf(n); containsAll(name, texts) {
				return true
			}
		}
		return false
	})
	p.click(role, name)
}

// nameOf returns the accessible name of an element; "" if the element is gone.
func (p *consolePage) nameOf(node int) string {
	p.t.Helper()
	r, err := p.command("Accessibility.getPartialAXTree", map[string]any{"backendNodeId": node, "fetchRelatives": false})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, n := range r.Result.Nodes {
		if n.BackendDOMNodeID == node {
			return n.Name.Value
		}
	}
	return ""
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// selects waits for a select and chooses an option by its text.
func (p *consolePage) selects(name, option string) {
	p.t.Helper()
	p.call(p.has("combobox", name), `function(text) {
		const o = [...this.options].find((o) => o.text === text);
		if (!o) throw new Error("no option " + text);
		Object.getOwnPropertyDescriptor(HTMLSelectElement.prototype, "value").set.call(this, o.value);
		this.dispatchEvent(new Event("change", {bubbles: true}));
	}`, option)
}

// ctrl is the modifier of keyWith.
const ctrl = 2

// keyWith presses a key with modifiers.
func (p *consolePage) keyWith(key string, modifiers int) {
	p.t.Helper()
	for _, kind := range []string{"rawKeyDown", "keyUp"} {
		event := map[string]any{"type": kind, "key": key, "windowsVirtualKeyCode": keyCode(key), "modifiers": modifiers}
		if r, err := p.command("Input.dispatchKeyEvent", event); err != nil || r.Error != nil {
			p.t.Fatal(err, r.Error)
		}
	}
}
