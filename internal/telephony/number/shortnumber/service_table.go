package shortnumber

// The types of services for the outbound policy, as in org.NumberTypes.
const (
	free    = "toll_free"
	charged = "uan" // at a price that the carrier sets, such as that of a local call
)

// crisisLine names the services that are reserved as emergency numbers are.
const crisisLine = "crisis line"

// The sources of the table.
const (
	sourceNANPA = "NANPA, N11 codes, https://www.nanpa.com/numbering/n11-codes; FCC 00-256"
	source988   = "47 CFR 52.200 (FCC 20-100), https://www.fcc.gov/988-suicide-and-crisis-lifeline"
	source988CA = "Telecom Regulatory Policy CRTC 2022-234, https://crtc.gc.ca/eng/archive/2022/2022-234.htm"
	source116   = "Commission Decision 2007/116/EC, https://eur-lex.europa.eu/eli/dec/2007/116/oj"
	source115   = "BNetzA, Nummernplan 115, https://www.115.de"
)

// harmonisedPrefix begins the six digits of every harmonised number for services of social value (source116). Services are
// added to the range, and each is free of charge.
const harmonisedPrefix = "116"

// The countries that have harmonised numbers for services of social value: the European Union, the European Economic Area,
// and countries with the same plan.
const harmonised = "AT BE BG HR CY CZ DK EE FI FR DE GR HU IE IT LV LT LU MT NL PL PT RO SK SI ES SE IS LI NO CH GB AL ME MK RS UA TR"

// serviceRows lists short numbers that are no emergency numbers. Premium services, such as 118 and three digits, are left
// out: they stay out of reach.
var serviceRows = []serviceRow{
	{"US PR VI GU AS MP", "988", crisisLine, free, source988},
	{"CA", "988", crisisLine, free, source988CA},
	{"US CA PR VI GU AS MP", "211", "social services", free, sourceNANPA},
	{"US CA PR VI GU AS MP", "311", "services of a city", free, sourceNANPA},
	{"US CA PR VI GU AS MP", "411", "directory assistance", charged, sourceNANPA},
	{"US CA PR VI GU AS MP", "511", "state of the roads", free, sourceNANPA},
	{"US CA PR VI GU AS MP", "611", "repairs by the carrier", free, sourceNANPA},
	{"US CA PR VI GU AS MP", "711", "relay for deaf people", free, sourceNANPA},
	{"US PR VI GU AS MP", "811", "underground lines", free, sourceNANPA},
	{"CA", "811", "health advice", free, sourceNANPA},

	{harmonised, "116000", "missing children", free, source116},
	{harmonised, "116006", "victims of crime", free, "Commission Decision 2009/884/EC"},
	{harmonised, "116111", "child help line", free, source116},
	{harmonised, "116117", "medical on-call service", free, "Commission Decision 2009/884/EC"},
	{harmonised, "116123", "emotional support", free, source116},
	{harmonised, "116016", "victims of violence", free, source116},

	{"GB", "101", "police, not an emergency", free, sourceOfcom},
	{"GB", "105", "loss of power", free, sourceOfcom},
	{"GB", "111", "health advice (NHS)", free, sourceOfcom},
	{"GB", "119", "health service", free, sourceOfcom},
	{"GB", "159", "fraud with bank accounts", charged, "Stop Scams UK, https://stopscamsuk.org.uk/159"},
	{"DE", "115", "public authorities", charged, source115},
	{"NZ", "105", "police, not an emergency", free, "New Zealand Police, https://www.police.govt.nz/105"},
	{"CH LI", "143", "emotional support", free, sourceCH},
	{"AT", "142", "emotional support", free, sourceRTR},
	{"FR", "3114", crisisLine, free, "Arcep, décision n° 2018-0881, numéros courts 31XY, https://3114.fr"},
	{"FR", "3919", "violence against women", free, "Arcep, décision n° 2018-0881, numéros courts 39XY"},
	{"SE", "11414", "police, not an emergency", charged, "Polisen, https://polisen.se/kontakt/"},
	{"SE", "1177", "health advice", charged, "https://www.1177.se"},
	{"SE", "11313", "information in a crisis", free, "SOS Alarm, https://www.sosalarm.se/trygghetstjanster/vara-tjanster/113-13/"},
	{"SG", "1777", "ambulance, not an emergency", free, "SCDF, https://www.scdf.gov.sg"},
	{"BR", "188", crisisLine, free, sourceBR},
	{"BR", "180", "violence against women", free, sourceBR},
	{"BR", "181", "reports of crime", free, sourceBR},
}
