package call

import (
	"encoding/json"
	"slices"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// Quality holds the audio quality of one direction of a leg.
type Quality struct {
	MOSMin          float64  `json:"mos_min" doc:"Estimate of the E-model (ITU-T G.107) from loss, jitter, delay and codec, 1 to 4.5"`
	MOSAverage      float64  `json:"mos_average"`
	Packets         int64    `json:"packets"`
	Lost            int64    `json:"lost"`
	LossRate        float64  `json:"loss_rate" doc:"Per cent"`
	BurstLossMax    int      `json:"burst_loss_max" doc:"Most packets lost in a row"`
	JitterMSAverage float64  `json:"jitter_ms_average"`
	JitterMSMax     float64  `json:"jitter_ms_max"`
	RTTMS           float64  `json:"rtt_ms"`
	Codec           string   `json:"codec"`
	Transport       string   `json:"transport"`
	SRTP            bool     `json:"srtp"`
	PostDialDelayMS int      `json:"post_dial_delay_ms"`
	FirstAudioMS    int      `json:"first_audio_ms"`
	SilenceSeconds  int      `json:"silence_seconds"`
	OneWayAudio     bool     `json:"one_way_audio"`
	Samples         []Sample `json:"samples" nullable:"false" doc:"Every 5 s"`
}

// Sample holds the audio quality of a direction during 5 s.
type Sample struct {
	At       db.Time `json:"at"`
	MOS      float64 `json:"mos"`
	LossRate float64 `json:"loss_rate"`
	JitterMS float64 `json:"jitter_ms"`
}

// LegQuality holds both directions of a leg: the media received from it, and the media sent to it as its RTCP reports
// describe it. LegState.Quality holds it as JSON.
type LegQuality struct {
	Received *Quality `json:"received"`
	Sent     *Quality `json:"sent"`
}

// quality returns the figures of the direction with the lowest average MOS of all legs, or nil if there is no
// measurement.
func (e Ended) quality() *event.Quality {
	if e.Quality != nil {
		return e.Quality
	}
	var all []*Quality
	for _, l := range e.Legs {
		var x LegQuality
		if json.Unmarshal(l.Quality, &x) != nil {
			continue
		}
		for _, q := range []*Quality{x.Received, x.Sent} {
			if q != nil && q.Packets > 0 {
				all = append(all, q)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	worst := slices.MinFunc(all, func(a, b *Quality) int {
		switch {
		case a.MOSAverage < b.MOSAverage:
			return -1
		case a.MOSAverage > b.MOSAverage:
			return 1
		}
		return 0
	})
	return &event.Quality{MOS: worst.MOSAverage, PacketLossRate: worst.LossRate, JitterMS: worst.JitterMSAverage, RTTMS: worst.RTTMS}
}
