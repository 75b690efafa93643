"""What a generated text answers: a parser for each kind of questions.

Every parser looks, in this order, at what follows the last "Answer:" or "the answer is", at
an answer that the text begins with, and at the whole text. Two answers joined by "or" are none, and
so is what a text that was cut off merely mentions on its way. A model that declines has refused,
unless it answers all the same. What follows a further question that the model asks itself is left
out. The authors' parsers take the last (CLUTRR, SALAD) or first (DEER) thing that looks like an
answer.
"""
