// A small document of our own, to try the page with: a lease of two pages, in the language of the page.

import { writePdf } from "./pdf.js";

const LEASES = {
  en: {
    name: "sample-lease.pdf",
    title: "Lease of Quay Cottage",
    pages: [
      [
        "# Lease of Quay Cottage", "",
        "# 1. Parties", "This lease is made between Harbour Homes (the landlord) and Ada Larsen (the tenant)", "for Quay Cottage, 12 Quay Street.", "",
        "# 2. Term", "The lease begins on 1 March 2026 and runs for three years. It is renewed for one year at", "a time unless one party ends it.", "",
        "# 3. Rent", "The rent is 1,450 euros a month, payable in advance on the first working day. A payment", "that is more than ten days late costs 25 euros.", "",
        "# 4. Deposit", "The tenant pays a deposit of two months’ rent. The landlord returns it within thirty days", "after the keys have been handed back, less the cost of any damage.",
      ],
      [
        "# 5. Notice", "Either party may end the lease at the end of a month by giving three months’ notice in", "writing. Notice by e-mail is not valid.", "",
        "# 6. Repairs", "The landlord keeps the roof, the walls and the heating in repair. The tenant pays for", "small repairs of up to 80 euros each, and has the boiler serviced every autumn.", "",
        "# 7. Pets and guests", "One cat or one dog may be kept. Guests may stay for up to six weeks in a year.",
      ],
    ],
  },
  fr: {
    name: "bail-exemple.pdf",
    title: "Bail de la Maison du Quai",
    pages: [
      [
        "# Bail de la Maison du Quai", "",
        "# 1. Parties", "Le présent bail est conclu entre Maisons du Port (le bailleur) et Ada Larsen (la locataire)", "pour la Maison du Quai, 12 rue du Quai.", "",
        "# 2. Durée", "Le bail commence le 1er mars 2026 pour une durée de trois ans. Il est ensuite reconduit", "d’année en année, sauf si l’une des parties y met fin.", "",
        "# 3. Loyer", "Le loyer est de 1 450 euros par mois, payable d’avance le premier jour ouvré. Un paiement", "en retard de plus de dix jours entraîne des frais de 25 euros.", "",
        "# 4. Dépôt de garantie", "La locataire verse un dépôt de deux mois de loyer. Le bailleur le restitue dans les trente", "jours qui suivent la remise des clés, déduction faite des dégâts.",
      ],
      [
        "# 5. Congé", "Chaque partie peut mettre fin au bail à la fin d’un mois, avec un préavis de trois mois", "donné par écrit. Un congé donné par courriel n’est pas valable.", "",
        "# 6. Réparations", "Le bailleur entretient le toit, les murs et le chauffage. La locataire paie les petites", "réparations jusqu’à 80 euros chacune et fait entretenir la chaudière chaque automne.", "",
        "# 7. Animaux et invités", "Un chat ou un chien est autorisé. Des invités peuvent séjourner jusqu’à six semaines par an.",
      ],
    ],
  },
};

export function makeSample(language) {
  const { name, title, pages } = LEASES[language];
  return new File([writePdf(title, pages)], name, { type: "application/pdf" });
}
