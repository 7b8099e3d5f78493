package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"soniq/e2e/rig"
)

// sizes are the windows in which pages are examined. axe does it in the dark theme with a wide layout, in the light one with the narrowest.
var sizes = []struct {
	width, height int
	theme         string
	axe           bool
}{{2560, 1440, "light", false}, {1440, 900, "dark", true}, {768, 1024, "light", false}, {360, 740, "light", true}}

// examined has the names of the pages that a run has examined.
var examined sync.Map

// checked examines the page as it is, once in a run: nothing is wider than the window in all sizes, and axe finds no fault in both themes.
// With SONIQ_E2E_PICTURES, pictures are written into that folder.
func (p *consolePage) checked(name string) {
	p.t.Helper()
	if _, done := examined.LoadOrStore(name, true); done {
		return // by the same journey on the other database
	}
	for _, size := range sizes {
		p.width(size.width, size.height)
		p.theme(size.theme)
		at := fmt.Sprintf("%s, %d pixels, %s", name, size.width, size.theme)
		p.fits(at)
		if size.axe {
			p.accessible(at)
		}
		p.picture(fmt.Sprintf("%s-%d", name, size.width))
	}
	p.width(1440, 900)
	p.theme("light")
	p.picture(name + "-light")
}

// fits waits until the page does not scroll sideways, because it places open menus anew after the size of the window changes. Otherwise it
// fails, and names the first element that is outside of the window.
func (p *consolePage) fits(at string) {
	p.t.Helper()
	var wide struct {
		Scroll, Window int
		Element        string
	}
	p.eval(&wide, `(async () => {
		for (let i = 0; i < 100 && document.documentElement.scrollWidth > innerWidth; i++) {
			await new Promise((done) => setTimeout(done, 50));
		}
		const scrolls = ".scroll, [role=tablist], svg, .hidden", right = (e) => e.getBoundingClientRect().right;
		const e = [...document.querySelectorAll("body *")].find((e) => right(e) > innerWidth + 1 && !e.closest(scrolls));
		return {Scroll: document.documentElement.scrollWidth, Window: innerWidth, Element: e ? e.outerHTML.slice(0, 200) : ""};
	})()`)
	if wide.Scroll > wide.Window {
		p.t.Errorf("%s: the page scrolls sideways: %+v", at, wide)
	}
}

// accessible fails for everything that axe reports on the page.
func (p *consolePage) accessible(name string) {
	p.t.Helper()
	axe, err := os.ReadFile(filepath.Join(rig.Root(), "e2e", "node", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		p.t.Fatal("no axe-core: scripts/setup test installs it")
	}
	p.eval(nil, "%s", "void (window.axe || (() => {"+string(axe)+"\n})())")
	var found []struct {
		ID, Help string
		Nodes    []struct{ HTML, FailureSummary string }
	}
	p.eval(&found, "axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations)")
	for _, v := range found {
		p.t.Errorf("%s: %s: %s: %v", name, v.ID, v.Help, v.Nodes)
	}
}
