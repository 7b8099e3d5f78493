package transcript

import (
	"fmt"
	"strings"
)

// WebVTT returns segments as subtitles, one cue per segment with the speaker as voice.
func WebVTT(segments []Segment) string {
	var b strings.Builder
	b.WriteString("WEBVTT\n")
	for _, s := range segments {
		fmt.Fprintf(&b, "\n%s --> %s\n<v %s>%s\n", timestamp(s.StartMS, '.'), timestamp(s.EndMS, '.'), s.Speaker.label(), escapeCue(s.Text))
	}
	return b.String()
}

// SubRip returns segments as numbered subtitles, each with its speaker in front.
func SubRip(segments []Segment) string {
	var b strings.Builder
	for i, s := range segments {
		fmt.Fprintf(&b, "%d\n%s --> %s\n%s: %s\n\n", i+1, timestamp(s.StartMS, ','), timestamp(s.EndMS, ','), s.Speaker.label(), s.Text)
	}
	return b.String()
}

// timestamp formats a time as hours, minutes, seconds and milliseconds.
func timestamp(ms int, point byte) string {
	return fmt.Sprintf("%02d:%02d:%02d%c%03d", ms/3600000, ms/60000%60, ms/1000%60, point, ms%1000)
}

// escapeCue escapes characters that are markup in WebVTT.
func escapeCue(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
