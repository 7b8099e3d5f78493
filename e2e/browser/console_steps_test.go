package browser

import (
	"strings"
	"time"
)

// clickText waits for an element with a role whose text contains all of the given texts, and clicks the first one. The rest of the text
// may change meanwhile.
func (p *consolePage) clickText(role string, texts ...string) {
	p.t.Helper()
	what := role + " with " + strings.Join(texts, ", ")
	p.clickFound(what, func() (node int) {
		until(p.t, what, pageTime, func() bool {
			for _, node = range p.nodes(role, "") {
				if containsAll(p.nameOf(node), texts) {
					return true
				}
			}
			return false
		})
		return node
	})
}

// menuTime is the longest time in which a menu shows its items.
const menuTime = 5 * time.Second

// clickInMenu opens the menu of a button and clicks an item. The menu is opened again if it closed, because the page drew its button anew
// or took one click for two.
func (p *consolePage) clickInMenu(button, role, item string) {
	p.t.Helper()
	p.clickFound(role+" "+item, func() (node int) {
		until(p.t, role+" "+item+" of "+button, pageTime, func() bool {
			if len(p.nodes(role, item)) == 0 {
				p.click("button", button)
			}
			for end := time.Now().Add(menuTime); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
				if found := p.nodes(role, item); len(found) > 0 {
					node = found[0]
					return true
				}
			}
			return false
		})
		return node
	})
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

// selectOption chooses an option of a field by its text. A select has its options at once. A field with suggestions gets the beginning of
// the text, and its first suggestion must have the text.
func (p *consolePage) selectOption(field, option string) {
	p.t.Helper()
	node := p.has("combobox", field)
	p.call(node, "function() { window.isSelect = this instanceof HTMLSelectElement; }")
	var isSelect bool
	if p.eval(&isSelect, "window.isSelect"); isSelect {
		p.call(node, `function(text) {
			const o = [...this.options].find((o) => o.text === text);
			if (!o) throw new Error("no option " + text);
			Object.getOwnPropertyDescriptor(HTMLSelectElement.prototype, "value").set.call(this, o.value);
			this.dispatchEvent(new Event("change", {bubbles: true}));
		}`, option)
		return
	}
	p.types("combobox", field, option[:3])
	until(p.t, "the suggestion "+option, pageTime, func() (first bool) {
		p.eval(&first, "!!document.querySelector('[role=option]')?.innerText.startsWith(%s)", quoted(option))
		return first
	})
	p.key("ArrowDown")
	p.key("Enter")
	p.hasNot("option", "")
}

// attachFile gives a file to a field for files. Such a field has the role of a button, and its name is longer than its label.
func (p *consolePage) attachFile(field, path string) {
	p.t.Helper()
	node := 0
	until(p.t, field, pageTime, func() bool {
		for _, n := range p.nodes("button", "") {
			if containsAll(p.nameOf(n), []string{field}) {
				node = n
				return true
			}
		}
		return false
	})
	r, err := p.command("DOM.setFileInputFiles", map[string]any{"files": []string{path}, "backendNodeId": node})
	if err != nil || r.Error != nil {
		p.t.Fatal(err, r.Error)
	}
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
