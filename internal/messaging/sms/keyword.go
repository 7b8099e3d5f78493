package sms

// The actions of keywords.
const (
	actionStop  = "STOP"
	actionStart = "START"
	actionHelp  = "HELP"
)

// keywordSet has the keywords of a language and the replies to them.
type keywordSet struct {
	language          string
	stop, start, help []string
	// The replies; each names the keywords that can be sent next.
	stopReply, startReply, helpReply string
}

// keywordSets lists the languages. English is first, because its keywords are those that carriers and regulators
// require. If several languages have the same keyword, the first one counts.
var keywordSets = []keywordSet{
	{"en", []string{"STOP", "STOPALL", "STOP ALL", "UNSUBSCRIBE", "END", "QUIT", "CANCEL", "REVOKE", "OPTOUT", "OPT OUT"},
		[]string{"START", "UNSTOP", "OPTIN", "OPT IN", "SUBSCRIBE"}, []string{"HELP", "INFO"},
		"You have been unsubscribed and will receive no more messages from this number. Reply START to subscribe again.",
		"You will receive messages from this number again. Reply STOP to unsubscribe.",
		"Reply STOP to receive no more messages from this number, START to receive them again."},
	{"fr", []string{"ARRET", "ARRÊT", "ARRÊTER", "ARRETER", "DESABONNER", "DÉSABONNER", "DESINSCRIRE", "DÉSINSCRIRE"},
		[]string{"REPRENDRE", "ABONNER"}, []string{"AIDE"},
		"Vous ne recevrez plus de messages de ce numéro. Répondez REPRENDRE pour vous réinscrire.",
		"Vous recevrez à nouveau les messages de ce numéro. Répondez ARRET pour vous désinscrire.",
		"Répondez ARRET pour ne plus recevoir de messages de ce numéro, REPRENDRE pour en recevoir à nouveau."},
	{"es", []string{"ALTO", "PARAR", "BAJA", "CANCELAR"}, []string{"INICIAR", "ALTA", "REANUDAR"}, []string{"AYUDA"},
		"Se ha dado de baja y no recibirá más mensajes de este número. Responda INICIAR para volver a recibirlos.",
		"Volverá a recibir mensajes de este número. Responda ALTO para darse de baja.",
		"Responda ALTO para no recibir más mensajes de este número, INICIAR para volver a recibirlos."},
	{"de", []string{"STOPP", "ABMELDEN", "ABBESTELLEN"}, []string{"ANMELDEN", "STARTEN"}, []string{"HILFE"},
		"Sie erhalten keine Nachrichten mehr von dieser Nummer. Antworten Sie ANMELDEN, um wieder welche zu erhalten.",
		"Sie erhalten wieder Nachrichten von dieser Nummer. Antworten Sie STOPP, um sich abzumelden.",
		"Antworten Sie STOPP, um keine Nachrichten mehr von dieser Nummer zu erhalten, ANMELDEN, um wieder welche zu erhalten."},
	{"it", []string{"FERMA", "BASTA", "CANCELLA", "DISISCRIVI"}, []string{"INIZIA", "ISCRIVI", "RIPRENDI"}, []string{"AIUTO"},
		"La cancellazione è avvenuta: non riceverà più messaggi da questo numero. Risponda INIZIA per riceverli di nuovo.",
		"Riceverà di nuovo i messaggi da questo numero. Risponda FERMA per non riceverne più.",
		"Risponda FERMA per non ricevere più messaggi da questo numero, INIZIA per riceverli di nuovo."},
	{"pt", []string{"PARE", "SAIR", "REMOVER", "DESCADASTRAR"}, []string{"COMEÇAR", "COMECAR", "INICIO", "INÍCIO"}, []string{"AJUDA"},
		"A sua subscrição foi cancelada: não receberá mais mensagens deste número. Responda COMECAR para voltar a receber.",
		"Voltará a receber mensagens deste número. Responda PARE para cancelar.",
		"Responda PARE para não receber mais mensagens deste número, COMECAR para voltar a receber."},
	{"nl", []string{"AFMELDEN", "UITSCHRIJVEN"}, []string{"AANMELDEN", "INSCHRIJVEN"}, []string{"HULP"},
		"U bent afgemeld en ontvangt geen berichten meer van dit nummer. Antwoord AANMELDEN om ze weer te ontvangen.",
		"U ontvangt weer berichten van dit nummer. Antwoord AFMELDEN om u af te melden.",
		"Antwoord AFMELDEN om geen berichten van dit nummer meer te ontvangen, AANMELDEN om ze weer te ontvangen."},
	{"pl", []string{"KONIEC", "WYPISZ", "REZYGNUJE", "REZYGNUJĘ"}, []string{"ZAPISZ", "WZNOW", "WZNÓW"}, []string{"POMOC"},
		"Subskrypcja anulowana: nie bedzie juz wiadomosci z tego numeru. Odpisz ZAPISZ, aby je znowu otrzymywac.",
		"Wiadomosci z tego numeru beda znowu przychodzic. Odpisz KONIEC, aby zrezygnowac.",
		"Odpisz KONIEC, aby nie otrzymywac wiadomosci z tego numeru, ZAPISZ, aby je znowu otrzymywac."},
}

// keywords has the keywords of all languages.
var keywords = indexKeywords(keywordSets)

// keywordAction is the action of a keyword, its language and the reply.
type keywordAction struct{ action, language, reply string }

func indexKeywords(packs []keywordSet) map[string]keywordAction {
	all := map[string]keywordAction{}
	for _, p := range packs {
		for _, kind := range []struct {
			asks  string
			words []string
			says  string
		}{{actionStop, p.stop, p.stopReply}, {actionStart, p.start, p.startReply}, {actionHelp, p.help, p.helpReply}} {
			for _, w := range kind.words {
				w = foldKeyword(w)
				if _, taken := all[w]; !taken {
					all[w] = keywordAction{kind.asks, p.language, kind.says}
				}
			}
		}
	}
	return all
}

// parseKeyword returns the action of a message; the zero value if it is not a keyword. The whole message must be the
// keyword, as foldKeyword compares it. Quoted lines and a signature under the message do not count.
func parseKeyword(body string) keywordAction {
	if len(body) > maxKeywordMessage {
		return keywordAction{}
	}
	if found, ok := keywords[foldKeyword(body)]; ok {
		return found
	}
	return keywords[foldKeyword(ownLines(body))]
}
