package speech

// Phonetic distance between two pronunciations.

// phonemeClass groups phones that are confused with one another on the telephone.
type phonemeClass uint8

const (
	vowelClass       phonemeClass = iota
	bilabialClass                 // P B
	dentalClass                   // T D TH DH
	velarClass                    // K G
	sibilantClass                 // S Z SH ZH CH JH
	labiodentalClass              // F V
	nasalClass                    // M N NG
	lateralClass                  // L
	rhoticClass                   // R ER
	glideClass                    // W Y HH
)

var classOf = func() (all [39]phonemeClass) {
	for k, names := range map[phonemeClass]string{bilabialClass: "P B", dentalClass: "T D TH DH", velarClass: "K G",
		sibilantClass: "S Z SH ZH CH JH", labiodentalClass: "F V",
		nasalClass: "M N NG", lateralClass: "L", rhoticClass: "R ER", glideClass: "W Y HH"} {
		phones, _ := parsePhones(names)
		for _, p := range phones {
			all[p] = k
		}
	}
	return all
}()

func isVowel(p phoneme) bool { return classOf[p] == vowelClass || p == erPhone }

var erPhone = phoneOf["ER"]

// phoneWeight is the weight of a phoneme in a distance: vowels are recognised less reliably than consonants.
var phoneWeight = func() (all [39]float32) {
	for p := range all {
		switch {
		case classOf[p] == vowelClass:
			all[p] = 0.6
		case classOf[p] == glideClass:
			all[p] = 0.5
		default:
			all[p] = 1
		}
	}
	all[phoneOf["AH"]], all[phoneOf["IH"]] = 0.4, 0.5
	return all
}()

// nearPhones has the distance of pairs of phones that are nearer than others of their class, or near although of
// different classes.
var nearPhones = map[string]float32{
	"P B": 0.3, "T D": 0.25, "K G": 0.3, "F V": 0.25, "S Z": 0.15, "SH ZH": 0.15, "CH JH": 0.3, "TH DH": 0.2, "TH F": 0.25, "TH T": 0.35,
	"DH V": 0.3, "DH D": 0.3,
	"TH S": 0.35, "S F": 0.4, "M N": 0.3, "N NG": 0.2, "SH CH": 0.3, "S SH": 0.4, "Z JH": 0.45, "ZH JH": 0.25, "Z S": 0.15, "T K": 0.5,
	"P T": 0.5, "P K": 0.5, "B D": 0.5, "B V": 0.35,
	"D G": 0.5, "D JH": 0.5, "T CH": 0.4, "L W": 0.45, "W V": 0.3, "ER R": 0.15, "Y JH": 0.5, "L R": 0.6, "HH K": 0.6, "P F": 0.5,
	"K CH": 0.55, "D N": 0.6,
	"AA AO": 0.05, "AA AH": 0.15, "AE EH": 0.15, "AE AA": 0.2, "AH IH": 0.12, "AH EH": 0.18, "AH UH": 0.12, "AH AE": 0.2, "AH AO": 0.18,
	"AH ER": 0.25, "EH IH": 0.12, "EH EY": 0.15,
	"IH IY": 0.12, "EY IY": 0.25, "EY AY": 0.3, "AY IY": 0.35, "AY IH": 0.35, "OW AO": 0.15, "OW AA": 0.25, "OW UW": 0.25, "OW AH": 0.25,
	"UW UH": 0.12, "UW AH": 0.25, "AW AA": 0.25, "AW OW": 0.3,
	"OY AO": 0.3, "OY OW": 0.3, "AY AA": 0.3, "EY AE": 0.25, "EY AH": 0.25, "IY AH": 0.25, "ER EH": 0.3, "ER AO": 0.3, "ER AA": 0.3,
	"ER UH": 0.25,
}

// phoneDistance is the distance of each pair of phones.
var phoneDistance = func() (all [39][39]float32) {
	for a := range all {
		for b := range all[a] {
			switch ka, kb := classOf[a], classOf[b]; {
			case a == b:
			case isVowel(phoneme(a)) && isVowel(phoneme(b)):
				all[a][b] = 0.4
			case ka == kb:
				all[a][b] = 0.6
			case ka == vowelClass || kb == vowelClass:
				all[a][b] = 1.1
			default:
				all[a][b] = 0.95
			}
		}
	}
	for pair, d := range nearPhones {
		two, _ := parsePhones(pair)
		all[two[0]][two[1]], all[two[1]][two[0]] = d, d
	}
	return all
}()

// phoneWeightSum returns the sum of the weights of phones.
func phoneWeightSum(said []phoneme) (sum float32) {
	for _, p := range said {
		sum += phoneWeight[p]
	}
	return sum
}

// firstRow fills the first row of the edit distance to the phones of.
func firstRow(row []float32, of []phoneme) {
	row[0] = 0
	for j, q := range of {
		row[j+1] = row[j] + phoneWeight[q]
	}
}

// nextRow computes the row of the edit distance after one more phone. least is a lower bound of the final distance.
func nextRow(row, before []float32, p phoneme, first bool, of []phoneme) (least float32) {
	costs, own := &phoneDistance[p], phoneWeight[p]
	left := before[0] + own
	row[0], least = left, left
	for j, q := range of {
		change := costs[q]
		if first && j == 0 && change >= 0.5 {
			change += firstCost
		}
		left = min(before[j]+change, before[j+1]+own, left+phoneWeight[q])
		row[j+1] = left
		least = min(least, left)
	}
	return least
}

// firstCost is added if the first phones differ, because the beginning of a word is recognised best.
const firstCost = 0.3

// pronunciationDistance returns the distance of two pronunciations: 0 if equal, about 1 if they have nothing in
// common.
func pronunciationDistance(a, b []phoneme) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 1
	}
	row, next := make([]float32, len(b)+1), make([]float32, len(b)+1)
	firstRow(row, b)
	for i, p := range a {
		nextRow(next, row, p, i == 0, b)
		row, next = next, row
	}
	return float64(row[len(b)] / max(phoneWeightSum(a), phoneWeightSum(b)))
}
