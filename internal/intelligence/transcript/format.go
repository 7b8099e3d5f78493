package transcript

import (
	"fmt"
	"strings"
)

// WebVTT writes segments as subtitles, one cue per segment with the speaker as voice.
func WebVTT(segments []Segment) string {
	var b strings.Builder
	b.WriteString("WEBVTT\n")
	for _, s := range segments {
		fmt.Fprintf(&b, "\n%s --> %s\n<v %s>%s\n", clock(s.StartMS, '.'), clock(s.EndMS, '.'), s.Speaker.label(), cue(s.Text))
	}
	return b.String()
}

// SubRip writes segments as numbered subtitles, each led by its speaker.
func SubRip(segments []Segment) string {
	var b strings.Builder
	for i, s := range segments {
		fmt.Fprintf(&b, "%d\n%s --> %s\n%s: %s\n\n", i+1, clock(s.StartMS, ','), clock(s.EndMS, ','), s.Speaker.label(), s.Text)
	}
	return b.String()
}

// clock writes a time as hours, minutes, seconds and thousandths.
func clock(ms int, point byte) string {
	return fmt.Sprintf("%02d:%02d:%02d%c%03d", ms/3600000, ms/60000%60, ms/1000%60, point, ms%1000)
}

// cue escapes what WebVTT would read as markup.
func cue(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
